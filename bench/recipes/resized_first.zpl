zpl 1

# A random box of a picture that was resized before, as in data sets whose pictures are made small once: two resizes.
pipeline written(root: path) {
  files("{root}/*/*.jpg")
  | shuffle()
  | image = bytes.decode_image(mode="rgb").resize(256, 256)
  | box = image.random_resized_crop_box()
  | image = image.crop(box).resize(224, 224)
  | image = image.normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]).to_chw()
  | select image
  | batch(64, drop_remainder=true)
}

pipeline hand(root: path) {
  files("{root}/*/*.jpg")
  | shuffle()
  | shape = bytes.decode_image_shape()
  | box = shape.resize_shape(256, 256).random_resized_crop_box()
  | source = shape.resize_source(box, 256, 256)
  | image = bytes.decode_image_region(source)
                 .resize_region(box, source, shape.height(), shape.width(), 256, 256)
                 .resize(224, 224)
                 .normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
                 .to_chw()
  | select image
  | batch(64, drop_remainder=true)
}

pipeline needed(root: path) {
  files("{root}/*/*.jpg")
  | shuffle()
  | shape = bytes.decode_image_shape()
  | box = shape.resize_shape(256, 256).random_resized_crop_box()
  | box = shape.resize_source(box, 256, 256)
  | select path, box
}
