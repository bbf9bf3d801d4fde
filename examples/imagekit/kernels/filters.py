"""Kernels over pictures: grey, blur, edges, threshold, and a 5-point stencil."""

from gristmill.script import tir as T

from .sampling import clamped, quantized

RADIUS = 2
WIDTH = 2 * RADIUS + 1


@T.prim_func
def grey(rgba: T.Buffer(("h", "w", 4), "uint8"), out: T.Buffer(("h", "w"), "uint8")):
    """The luma of ITU-R BT.601 in integers: weights 77, 150 and 29 of 256, rounded."""
    for y, x in T.grid(h, w):
        red = T.cast(rgba[y, x, 0], "int32")
        green = T.cast(rgba[y, x, 1], "int32")
        blue = T.cast(rgba[y, x, 2], "int32")
        out[y, x] = T.cast((77 * red + 150 * green + 29 * blue + 128) >> 8, "uint8")


@T.prim_func
def blur_rows(src: T.Buffer(("h", "w"), "float32"), dst: T.Buffer(("h", "w"), "float32")):
    """The mean of 2 * RADIUS + 1 neighbours along each row; the border repeats."""
    for y, x in T.grid(h, w):
        total = T.float32(0)
        for k in range(-RADIUS, RADIUS + 1):
            total = total + src[y, clamped(x + k, w)]
        dst[y, x] = total / WIDTH


@T.prim_func
def blur_columns(src: T.Buffer(("h", "w"), "float32"), dst: T.Buffer(("h", "w"), "float32")):
    """The mean of 2 * RADIUS + 1 neighbours along each column; the border repeats."""
    for y, x in T.grid(h, w):
        total = T.float32(0)
        for k in range(-RADIUS, RADIUS + 1):
            total = total + src[clamped(y + k, h), x]
        dst[y, x] = total / WIDTH


@T.prim_func
def sobel(src: T.Buffer(("h", "w"), "float32"), dst: T.Buffer(("h", "w"), "float32")):
    """The magnitude of the Sobel gradient; the border repeats."""
    for y, x in T.grid(h, w):
        north = clamped(y - 1, h)
        south = clamped(y + 1, h)
        west = clamped(x - 1, w)
        east = clamped(x + 1, w)
        across = (src[north, east] + 2.0 * src[y, east] + src[south, east]) - (
            src[north, west] + 2.0 * src[y, west] + src[south, west]
        )
        down = (src[south, west] + 2.0 * src[south, x] + src[south, east]) - (
            src[north, west] + 2.0 * src[north, x] + src[north, east]
        )
        dst[y, x] = T.sqrt(across * across + down * down)


@T.prim_func
def stencil(src: T.Buffer(("h", "w"), "float32"), dst: T.Buffer(("h", "w"), "float32"), rate: T.float32):
    """One step of heat flow: the 5-point stencil inside, the border as it is."""
    for y, x in T.grid(h, w):
        if y > 0 and y < h - 1 and x > 0 and x < w - 1:
            around = src[y - 1, x] + src[y + 1, x] + src[y, x - 1] + src[y, x + 1]
            dst[y, x] = src[y, x] + rate * (around - 4.0 * src[y, x])
        else:
            dst[y, x] = src[y, x]


@T.prim_func
def posterize(src: T.Buffer(("h", "w"), "float32"), dst: T.Buffer(("h", "w"), "uint8"), levels: T.int32):
    """Grey values in [0, 1] as bytes of a few levels; NaN and values outside are clipped."""
    assert levels >= 2, f"levels must be at least 2, got {levels}"
    for y, x in T.grid(h, w):
        dst[y, x] = quantized(src[y, x], levels)
