/** The previous and the current state of the deliveries of a subscription, as recorded by a part. */
export interface DeliveryNews {
  readonly before: DeliveryNote;
  readonly now: DeliveryNote;
}

/**
 * Returns true if two states look the same in a status. This does not compare the time of the first attempt with this
 * result.
 */
export interface DeliveryNote {
  /** The result of the last attempt, and whether there are any dead letters. */
  readonly trouble: string;
  /** The number of digits in the number of waiting events. */
  readonly backlog: string;
}
