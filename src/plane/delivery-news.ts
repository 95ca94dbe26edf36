/** How the deliveries of a subscription went before and go now, as a part notes it. */
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
