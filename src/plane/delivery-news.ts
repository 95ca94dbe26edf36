/** How the deliveries of a subscription went before and go now, as a part notes it. */
export interface DeliveryNews {
  readonly before: DeliveryNote;
  readonly now: DeliveryNote;
}

/** Returns whether two states look the same in a status. Ignores the time since which attempts have this result. */
export interface DeliveryNote {
  /** Result of the last attempt, and whether there are dead letters. */
  readonly trouble: string;
  /** Digits of the number of events that wait. */
  readonly backlog: string;
}
