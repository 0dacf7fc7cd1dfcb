range(3) | x = "{"a"}{concat("{", "}")}{index}\u{e9}\x41" | y = r"{" | if true { } else if false { | z = x[::2, -1] }
test "a" { input: [{x: 3,}, {x: 4}] expect: [] check true }
