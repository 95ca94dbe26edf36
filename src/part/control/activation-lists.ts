import { NO_REF } from '../lanes/ref.ts';

/** The activations in the same format as in the hash (see `gate/activations.lua`). */
export interface ActivationLists {
  /** Adds a field from the hash. You can add the same field twice. */
  readonly add: (field: string, list: string) => void;
  /** You need to call this when all fields have been added. */
  readonly read: () => ReadActivations;
}

export interface ReadActivations {
  /** Slot followed by group key. */
  readonly activations: Set<string>;
  /**
   * The fields of group keys which have a field that is missing or can't be read. The activations of these group keys
   * are not included.
   */
  readonly damaged: readonly string[];
}

const [SLOT, SUFFIX] = [8, 3];
const ENTRY = SLOT + NO_REF.length;
const LIST = /^(?:[0-9a-v]{8}[0-9a-f]{15})*$/;
const COUNT = /^(?!00[01])\d{3}$/;

/** The fields of a group key that has more than one field, or a field that is damaged. */
interface Fields {
  readonly fields: Set<string>;
  readonly numbers: Set<number>;
  /** The number of the last field, as it is stored in the first field. */
  last: number;
  isDamaged: boolean;
}

export function createActivationLists(): ActivationLists {
  const activations = new Set<string>();
  const several = new Map<string, Fields>();

  function note(groupKey: string, field: string): Fields {
    const known = several.get(groupKey) ?? { fields: new Set(), numbers: new Set(), last: 1, isDamaged: false };
    several.set(groupKey, known);
    known.fields.add(field);
    return known;
  }

  function isWhole({ isDamaged, numbers, last }: Fields): boolean {
    if (isDamaged || numbers.size !== last) return false;
    for (let number = 1; number <= last; number++) if (!numbers.has(number)) return false;
    return true;
  }

  return {
    add(field, list) {
      const [groupKey = '', suffix] = field.split('\0', 2);
      const number = suffix === undefined ? 1 : Number(suffix);
      const hasCount = number === 1 && list.length % ENTRY === SUFFIX;
      const end = list.length - (hasCount ? SUFFIX : 0);
      const count = list.slice(end);
      const slots: string[] = [];
      for (let at = 0; at < end; at += ENTRY) slots.push(list.slice(at, at + SLOT));
      const isReadable =
        LIST.test(list.slice(0, end)) &&
        (!hasCount || COUNT.test(count)) &&
        new Set(slots).size === slots.length &&
        (suffix === undefined || field === `${groupKey}\0${number}`) &&
        Number.isInteger(number);
      if (suffix !== undefined || hasCount || !isReadable) {
        const noted = note(groupKey, field);
        noted.numbers.add(number);
        if (hasCount) noted.last = Number(count);
        noted.isDamaged ||= !isReadable;
      }
      if (isReadable) for (const slot of slots) activations.add(slot + groupKey);
    },
    read() {
      const damaged: string[] = [];
      for (const [groupKey, fields] of several) {
        if (isWhole(fields)) continue;
        damaged.push(...fields.fields);
        if (!fields.fields.has(groupKey)) damaged.push(groupKey);
        for (const each of activations) if (each.slice(SLOT) === groupKey) activations.delete(each);
      }
      return { activations, damaged: damaged.toSorted() };
    },
  };
}
