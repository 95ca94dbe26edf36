import type { AttemptOutcome } from '../../api/delivery-status.ts';
import type { DeliveryNews, DeliveryNote } from '../../plane/delivery-news.ts';

/** Maps the letters that are used in scripts to the results of attempts. There is no letter for a delivery. */
export const ATTEMPT_LETTERS = {
  Succeeded: 's',
  HttpError: 'h',
  InvalidResponse: 'i',
  Timeout: 't',
  ConnectionFailed: 'c',
  DnsFailed: 'n',
  TlsFailed: 'l',
  EndpointRefused: 'r',
  InvalidRequest: 'q',
  ConsentMissing: 'w',
} as const satisfies Readonly<Record<AttemptOutcome, string>>;

const OUTCOMES = new Map<string, string>(Object.entries(ATTEMPT_LETTERS).map(([outcome, letter]) => [letter, outcome]));
const [SINCE_AT, DEAD_AT, BACKLOG_AT] = [1, 12, 13];
const SLOT_CHARS = 8;

/** The state of the deliveries of a slot, as it is written by `news.lua`. */
export interface SlotNote {
  /** Undefined if there was no attempt yet. */
  readonly outcome: AttemptOutcome | undefined;
  readonly sinceMs: number;
  /** 1 while there are dead letters. */
  readonly dead: string;
  /** The number of digits in the number of waiting events. */
  readonly backlog: string;
}

export function parseSlotNote(text: string): SlotNote {
  return {
    outcome: OUTCOMES.get(text[0] ?? '') as AttemptOutcome | undefined,
    sinceMs: Number.parseInt(text.slice(SINCE_AT, DEAD_AT), 16),
    dead: text.slice(DEAD_AT, BACKLOG_AT),
    backlog: text.slice(BACKLOG_AT),
  };
}

function noteOf(text: string): DeliveryNote {
  const { outcome, dead, backlog } = parseSlotNote(text);
  return { trouble: `${outcome ?? '-'} ${dead}`, backlog };
}

/** News about the deliveries of a slot. */
export interface SlotNews {
  readonly slot: string;
  readonly news: DeliveryNews;
}

export function parseSlotNews(text: string): SlotNews[] {
  if (text === '') return [];
  return text.split('\n').map(line => {
    const [before = '', now = ''] = line.slice(SLOT_CHARS).split('|');
    return { slot: line.slice(0, SLOT_CHARS), news: { before: noteOf(before), now: noteOf(now) } };
  });
}
