zpl 1

# Files are batched, and everything else is done to members of batches.
pipeline written(root: path) {
  let classes = dirs(root)
  files("{root}/*/*.jpg")
  | batch(64)
  | label = classes.index_of(path.parent.name)
  | image = bytes.decode_image(mode="rgb")
                 .random_resized_crop(224, 224)
                 .random_flip()
                 .normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
                 .to_chw()
  | select image, label
}

pipeline hand(root: path) {
  let classes = dirs(root)
  files("{root}/*/*.jpg")
  | label = classes.index_of(path.parent.name)
  | image = bytes.decode_image(mode="rgb")
                 .random_resized_crop(224, 224)
                 .random_flip()
                 .normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
                 .to_chw()
  | select image, label
  | batch(64)
}
