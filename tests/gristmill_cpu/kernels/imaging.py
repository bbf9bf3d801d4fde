"""Kernels over pictures, as one would port them from Python."""

from gristmill.script import tir as T

from .common import clamp_index, saturate

RADIUS = 2
SIGMA_SPACE = 2.0
SIGMA_RANGE = 0.1


@T.prim_func
def bilateral(src: T.Buffer(("h", "w"), "float32"), dst: T.Buffer(("h", "w"), "float32")):
    for y in T.parallel(h):
        for x in range(w):
            center = src[y, x]
            weight_sum = 0.0
            value_sum = 0.0
            for dy in range(-RADIUS, RADIUS + 1):
                for dx in range(-RADIUS, RADIUS + 1):
                    v = src[clamp_index(y + dy, h), clamp_index(x + dx, w)]
                    d2 = T.float32(dx * dx + dy * dy)
                    r = v - center
                    wgt = T.exp(-d2 / (2 * SIGMA_SPACE**2) - r * r / (2 * SIGMA_RANGE**2))
                    weight_sum += wgt
                    value_sum += wgt * v
            dst[y, x] = value_sum / weight_sum


@T.prim_func
def resize_bilinear(src: T.Buffer(("h", "w", 4), "uint8"), dst: T.Buffer(("oh", "ow", 4), "uint8")):
    for y in range(oh):
        sy = (T.float32(y) + 0.5) * h / oh - 0.5
        y0 = int(T.floor(sy))
        fy = sy - y0
        for x in range(ow):
            sx = (T.float32(x) + 0.5) * w / ow - 0.5
            x0 = int(T.floor(sx))
            fx = sx - x0
            for c in range(4):
                a = src[clamp_index(y0, h), clamp_index(x0, w), c]
                b = src[clamp_index(y0, h), clamp_index(x0 + 1, w), c]
                d = src[clamp_index(y0 + 1, h), clamp_index(x0, w), c]
                e = src[clamp_index(y0 + 1, h), clamp_index(x0 + 1, w), c]
                top = a * (1 - fx) + b * fx
                bottom = d * (1 - fx) + e * fx
                dst[y, x, c] = saturate(top * (1 - fy) + bottom * fy)


@T.prim_func
def rgb_to_hsv(rgb: T.Buffer(("n", 3), "float32"), hsv: T.Buffer(("n", 3), "float32")):
    for i in range(n):
        r = rgb[i, 0]
        g = rgb[i, 1]
        b = rgb[i, 2]
        mx = max(r, g, b)
        mn = min(r, g, b)
        delta = mx - mn
        hue = 0.0
        if delta > 0:
            if mx == r:
                hue = (g - b) / delta - 6 * T.floor((g - b) / delta / 6)
            elif mx == g:
                hue = (b - r) / delta + 2
            else:
                hue = (r - g) / delta + 4
        hsv[i, 0] = hue / 6
        hsv[i, 1] = delta / mx if mx > 0 else 0
        hsv[i, 2] = mx


@T.prim_func
def mandelbrot(out: T.Buffer(("h", "w"), "int32"), x0: T.float64, y0: T.float64, step: T.float64, limit: T.int32):
    for py in range(h):
        for px in range(w):
            cx = x0 + px * step
            cy = y0 + py * step
            zx = T.float64(0.0)
            zy = T.float64(0.0)
            it = T.int32(0)
            while zx * zx + zy * zy <= 4.0 and it < limit:
                zx, zy = zx * zx - zy * zy + cx, 2 * zx * zy + cy
                it += 1
            out[py, px] = it
