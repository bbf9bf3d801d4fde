"""The context table: its words stand where the offsets say."""

from __future__ import annotations

import struct

from gristmill.codegen import context_table as table


def test_words_are_where_the_offsets_say() -> None:
    data = struct.pack("<8Q", *table.table_words(-3, 11, 22, 33, 44, (55, 66, 77)))

    def word(offset: int, form: str = "<Q") -> int:
        found: int = struct.unpack_from(form, data, offset)[0]
        return found

    assert word(table.VERSION, "<I") == table.CONTEXT_VERSION
    assert word(table.DEVICE_ID, "<i") == -3
    assert [word(at) for at in (table.DEVICE, table.LAUNCH, table.ALLOCATE, table.RELEASE)] == [11, 22, 33, 44]
    assert [word(table.kernel_offset(number)) for number in range(3)] == [55, 66, 77]
    assert len(data) == table.kernel_offset(3)
