"""Tables in layers: they have the entries of a dict, and no layer outgrows its limit."""

from random import Random

from mxwire.protocol.library.layered_table import LayeredTable

LIMIT = 21_845


def sizes(table: LayeredTable) -> list[int]:
    """The number of entries of each layer."""
    return [len(each) for each in table._layers]


def test_a_table_has_the_entries_of_a_dict():
    """Entries of all layers are found, replaced, removed and iterated."""
    random, table, expected = Random(7), LayeredTable(), {}
    for key in range(60_000):
        key <<= 32
        expected[key] = key + 1
        table.add(key, key + 1)
    for key in random.sample(list(expected), 40_000):
        assert table.pop(key) == expected.pop(key)
        assert table.pop(key) is None
    for key in random.sample(list(expected), 1000):
        expected[key] = -1
        table.replace(key, -1)
    for key in range(60_000, 100_000):
        expected[key] = key + 1
        table.add(key, key + 1)
    table.replace(1, 5)
    assert table.get(1) is None
    assert len(table) == len(expected) and {key: table.get(key) for key in table} == expected


def test_a_table_of_few_entries_is_a_dict_too():
    """The entry of a table of one is apart from the layers."""
    random, table, expected = Random(8), LayeredTable(), {}
    for turn in range(3000):
        key, entry = random.randrange(3), f"entry {turn}"
        if random.randrange(3) == 0:
            table.replace(key, entry)
            expected |= {key: entry} if key in expected else {}
        elif key in expected:
            assert table.pop(key) == expected.pop(key)
        else:
            assert table.pop(key) is None
            table.add(key, entry)
            expected[key] = entry
        assert len(table) == len(expected) and bool(table) == bool(expected)
        assert [*table] == [*expected] and [table.get(each) for each in range(3)] == [*map(expected.get, range(3))]


def test_no_layer_outgrows_its_limit():
    """A dict of more entries takes long to grow."""
    table = LayeredTable()
    for key in range(3 * LIMIT + 1):
        table.add(key, key)
    assert sizes(table) == [LIMIT, LIMIT, LIMIT, 1]


def test_layers_that_are_half_empty_are_filled_again():
    """Otherwise each search would pass more and more of them."""
    table, newest = LayeredTable(), 0
    for turn in range(20):
        for _ in range(LIMIT):
            newest += 1
            table.add(newest, newest)
        for key in list(table):
            if key % LIMIT > 10:
                table.pop(key)
        assert len(sizes(table)) <= 2, f"turn {turn}"


def test_layers_that_are_empty_are_removed():
    """A table that was large searches one layer again."""
    table = LayeredTable()
    for key in range(2 * LIMIT + 1):
        table.add(key, key)
    for key in table:
        assert table.pop(key) == key
    assert sizes(table) == [0] and not len(table)
