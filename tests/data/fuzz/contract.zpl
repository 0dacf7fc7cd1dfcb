zpl 1
# A literal in a contract has no YAML form: it is refused when the program is read.
stream a -> {x: 3} = range(10) | index = f64(index)
a
