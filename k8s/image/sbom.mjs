// Prints one CycloneDX document of all that is in the image: npm's packages, Debian's and Node.
//
//     node sbom.mjs NPM_SBOM DPKG_STATUS NODE_VERSION
import { readFileSync } from "node:fs";

const [npmFile, dpkgFile, nodeVersion] = process.argv.slice(2);
const document = JSON.parse(readFileSync(npmFile, "utf8"));
const fieldOf = (stanza, name) => new RegExp(`^${name}: (.*)$`, "m").exec(stanza)?.[1];
const debian = readFileSync(dpkgFile, "utf8")
  .split("\n\n")
  .filter((stanza) => stanza.trim() !== "")
  .map((stanza) => {
    const [name, version, arch] = ["Package", "Version", "Architecture"].map((field) => fieldOf(stanza, field));
    const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${arch}&distro=trixie`;
    return { "bom-ref": purl, type: "library", name, version, purl };
  });
const purl = `pkg:generic/node@${nodeVersion}`;
const node = { "bom-ref": purl, type: "platform", name: "node", version: nodeVersion, purl };
document.components.push(node, ...debian);
process.stdout.write(`${JSON.stringify(document, null, 1)}\n`);
