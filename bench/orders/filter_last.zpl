zpl 1

# One class of five is kept, after everything has been done to all.
pipeline written(root: path) {
  let classes = dirs(root)
  files("{root}/*/*.jpg")
  | image = bytes.decode_image(mode="rgb")
  | image = image.random_resized_crop(224, 224).random_flip()
  | image = image.normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]).to_chw()
  | label = classes.index_of(path.parent.name)
  | filter label % 5 == 2
  | select image, label
  | batch(64)
}

pipeline hand(root: path) {
  let classes = dirs(root)
  files("{root}/*/*.jpg")
  | label = classes.index_of(path.parent.name)
  | filter label % 5 == 2
  | image = bytes.decode_image(mode="rgb")
  | image = image.random_resized_crop(224, 224).random_flip()
  | image = image.normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]).to_chw()
  | select image, label
  | batch(64)
}
