/**
 * Defects of a step or a process. If a search does not find anything while one of these defects is enabled, it is not
 * thorough enough.
 */
export const DEFECTS = [
  // ingest
  'id is not looked up',
  'newcomers before those that wait',
  // exchange
  "completion under another's claim",
  'calls are not numbered',
  'room is counted, not said',
  'next of a lane before those that wait',
  'cap in each dispatcher',
  'full slot does not come back',
  'claims do not ask whether a key is off',
  'late delivery leaves its lane retrying',
  'what has ended is put back',
  // advance
  'live in a later step',
  'advance from a stale position',
  'charged again when a call goes on',
  // gate
  'deactivate does not mark a claimed lane',
  'pause keeps no position',
  'pause in a hold at the tail',
  'skip in a hold removes the position',
  'since by the clock',
  // evict
  'evict asks no time',
  'evict counts no lapse',
  // dispatcher
  'no fence',
  'fence before the list',
  'list beside an exchange',
  'pushes are not compared',
  'lost answer is not reconciled',
  'deaf connection is not noticed',
  'age from the reading',
  'clock is read once',
  // failover
  'refs are used again',
] as const;

export type Defect = (typeof DEFECTS)[number];
