# A licence.
zpl 1                     # the version

# What it is.
import "augment.zpl" as aug    # help
let mean = [0.485,   # red
  0.456, # green
  0.406]
fn rms(x: f64[n], # numbers
  scale=1.5) = (x * x).mean().sqrt() * scale

# A table.
stream web -> {text: str} = csv("web.csv", columns={text: str}) # rows
  # only long ones
  | filter text.length() > 3 and
      not (text == "a") # c

pipeline train(root: path = "data: #1",  # where
    size: int = 224, mode: enum(train, test) = train) -> {image: f32[64, 3, size, size], label: i64[64]} { # contract
  # classes
  let classes = dirs(root)   # sorted

  files("{root}/*/*.jpg")    # one sample a file
  # the label
  | label = classes.index_of(path.parent.name)
  | if mode == train { # only then
      # everything
      shuffle()   # all of it
      # end of then
    } else if mode == test { take(3) } else { # otherwise
      | take(1000)
      # end of else
    } # done

  | image = bytes.decode_image(mode="rgb")   # u8[h, w, 3]
     # crop
     .random_resized_crop(size, size)  # u8
     .normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]).to_chw()
  | x = some_function(first_argument, "a, b: {root} # not a comment", another_argument_that_is_long, and_one=more * (1 + 2) - 3)
  | y = f(a, # first
      b)
  | select image, label
  | batch(64, drop_remainder=true)
  # the end of the pipeline
}

pipeline other { web | x = r"C:\n: #" | y = "tab\t \" \{ {text} '" | z = -x[0, 1:2, ::3, :].a.b | null = 1 }
let late = 3 # after

test "a name, with: signs" of train { # header
  params: {size: 8}
  # samples
  input: [{x: 3}, # three
    {x: [1, 2], y: "a"}]
  expect: {image: f(2, 3) # two
  }
  check 1 + 1 == 2 # first
  check true
  # end
}
test "fails" of other { input: {} fails "over: flow" }
# the end of the file
