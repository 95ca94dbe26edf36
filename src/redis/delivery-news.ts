/** How the deliveries of a subscription went before and go now, as `lib/delivery.lua` notes it. */
export interface DeliveryNews {
  readonly before: DeliveryNote;
  readonly now: DeliveryNote;
}

/** Two that are equal show the same in a status; since when an attempt ends so is left out. */
export interface DeliveryNote {
  /** How the last attempt ended, and whether there are dead letters. */
  readonly trouble: string;
  /** Digits of the number of events that wait. */
  readonly backlog: string;
}

/** Reads what `exchange` answers; undefined where nothing changed. */
export function parseDeliveryNews(text: string): DeliveryNews | undefined {
  if (text === '') return undefined;
  const [before = '', now = ''] = text.split('|');
  return { before: parseNote(before), now: parseNote(now) };
}

function parseNote(text: string): DeliveryNote {
  const [outcome = '', , dead = '', backlog = ''] = text.split(' ');
  return { trouble: `${outcome} ${dead}`, backlog };
}
