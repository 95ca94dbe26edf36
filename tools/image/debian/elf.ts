/** The parts of an ELF file required to find the libraries it loads. */
export interface Elf {
  /** `e_machine`: 62 for x86-64, 183 for AArch64. */
  readonly machine: number;
  /** The absolute path of the dynamic linker. Only programs have a dynamic linker. */
  readonly interpreter: string | undefined;
  /** The names of the libraries that the file loads, e.g. `libc.so.6`. */
  readonly needed: readonly string[];
}

const LOAD = 1;
const DYNAMIC = 2;
const INTERPRETER = 3;

const DYNAMIC_NEEDED = 1n;
const DYNAMIC_STRINGS = 5n;

/** Returns true for a file that starts like an ELF file. */
export function isElf(file: Buffer): boolean {
  return file.subarray(0, 4).equals(Buffer.from('\x7fELF', 'latin1'));
}

/**
 * Reads a 64-bit little-endian ELF file. The format is defined in the System V ABI, chapters 4 and 5.
 *
 * @throws for any other file
 */
export function readElf(file: Buffer): Elf {
  if (!isElf(file) || file[4] !== 2 || file[5] !== 1) throw new Error('not a 64-bit little-endian ELF file');
  const segments = readSegments(file);
  const interpreter = segments.find(({ type }) => type === INTERPRETER);
  return {
    machine: file.readUInt16LE(18),
    interpreter: interpreter && readText(file, interpreter.offset),
    needed: readNeeded(file, segments),
  };
}

interface Segment {
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly size: number;
}

function readSegments(file: Buffer): Segment[] {
  const table = Number(file.readBigUInt64LE(32));
  const entrySize = file.readUInt16LE(54);
  return Array.from({ length: file.readUInt16LE(56) }, (_, index) => {
    const entry = table + index * entrySize;
    return {
      type: file.readUInt32LE(entry),
      offset: Number(file.readBigUInt64LE(entry + 8)),
      address: Number(file.readBigUInt64LE(entry + 16)),
      size: Number(file.readBigUInt64LE(entry + 32)),
    };
  });
}

function readNeeded(file: Buffer, segments: readonly Segment[]): string[] {
  const dynamic = segments.find(({ type }) => type === DYNAMIC);
  if (dynamic === undefined) return [];
  const entries: { readonly tag: bigint; readonly value: number }[] = [];
  for (let at = dynamic.offset; at < dynamic.offset + dynamic.size; at += 16) {
    const tag = file.readBigInt64LE(at);
    if (tag === 0n) break;
    entries.push({ tag, value: Number(file.readBigUInt64LE(at + 8)) });
  }
  const address = entries.find(({ tag }) => tag === DYNAMIC_STRINGS)?.value ?? 0;
  // The table is specified by its address in memory, so its position in the file needs to be determined.
  const home = segments.find(
    each => each.type === LOAD && address >= each.address && address < each.address + each.size,
  );
  if (home === undefined) throw new Error('the table of strings is not part of the file');
  const strings = address - home.address + home.offset;
  return entries.filter(({ tag }) => tag === DYNAMIC_NEEDED).map(({ value }) => readText(file, strings + value));
}

function readText(file: Buffer, start: number): string {
  return file.toString('latin1', start, file.indexOf(0, start));
}
