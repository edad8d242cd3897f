"""Draws the demo's picture: a page with lines of text, as a binary PPM."""

import sys

from PIL import Image, ImageDraw, ImageFont

LINES = ["HEDDLE", "plans where every piece", "of a model runs,", "proves how good that is,", "and runs it for real."]


def main() -> None:
    page = Image.new("RGB", (640, 640), (244, 241, 232))
    draw = ImageDraw.Draw(page)
    draw.rectangle((24, 24, 615, 615), outline=(60, 60, 70), width=3)
    for i, line in enumerate(LINES):
        font = ImageFont.load_default(size=72 if i == 0 else 40)
        draw.text((64, 70 + (0 if i == 0 else 60) + i * 88), line, fill=(25, 28, 36), font=font)
    page.save(sys.argv[1], format="PPM")


if __name__ == "__main__":
    main()
