zpl 1

# One picture in ten is kept, by what is known of it without its pixels; asked after everything else is done.
pipeline written(root: path) {
  files("{root}/*/*.jpg")
  | shuffle()
  | image = bytes.decode_image(mode="rgb")
  | box = image.random_resized_crop_box()
  | image = image.crop(box)
                 .resize(224, 224)
                 .normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
                 .to_chw()
  | digest = hash(path.name)
  | filter digest % 10 == 3
  | select image
  | batch(64)
}

pipeline hand(root: path) {
  files("{root}/*/*.jpg")
  | shuffle()
  | filter hash(path.name) % 10 == 3
  | box = bytes.decode_image_shape().random_resized_crop_box()
  | image = bytes.decode_image_region(box)
                 .resize(224, 224)
                 .normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
                 .to_chw()
  | select image
  | batch(64)
}

pipeline needed(root: path) {
  files("{root}/*/*.jpg")
  | shuffle()
  | filter hash(path.name) % 10 == 3
  | box = bytes.decode_image_shape().random_resized_crop_box()
  | select path, box
}
