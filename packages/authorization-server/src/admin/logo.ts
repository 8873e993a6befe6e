// The picture of an application, as an administrator gives it: a small PNG or JPEG by its own bytes, whatever its name
// says. No SVG, which can hold scripts and addresses, and nothing that grows huge when it is unpacked.

const maxLogoBytes = 32_768;
const maxLogoPixels = 1024;

interface Size {
  readonly width: number;
  readonly height: number;
}

/** The `data:` URL of the picture, or why it is none. */
export function readLogo(bytes: Buffer): { readonly url: string } | { readonly problem: string } {
  if (bytes.length > maxLogoBytes) return { problem: `the logo has more than ${maxLogoBytes / 1024} KiB` };
  const png = pngSize(bytes);
  const size = png ?? jpegSize(bytes);
  if (size === undefined) return { problem: "the logo is neither a PNG nor a JPEG" };
  if (size.width > maxLogoPixels || size.height > maxLogoPixels || size.width < 1 || size.height < 1)
    return { problem: `the logo is not 1 to ${maxLogoPixels} pixels wide and high` };
  return { url: `data:image/${png === undefined ? "jpeg" : "png"};base64,${bytes.toString("base64")}` };
}

/** The size stands in the first chunk (PNG §11.2.1). */
function pngSize(bytes: Buffer): Size | undefined {
  if (bytes.length < 24 || bytes.toString("latin1", 0, 8) !== "\x89PNG\r\n\x1a\n") return undefined;
  if (bytes.toString("latin1", 12, 16) !== "IHDR") return undefined;
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

/** The size stands in the frame header, after segments that each tell their length (ITU T.81 §B.2.2). */
function jpegSize(bytes: Buffer): Size | undefined {
  if (bytes.length < 4 || bytes.readUInt16BE(0) !== 0xffd8) return undefined;
  for (let at = 2; at + 9 <= bytes.length;) {
    if (bytes[at] !== 0xff) return undefined;
    const marker = bytes[at + 1]!;
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
    at += 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}
