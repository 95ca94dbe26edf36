/** The previous and current state of a subscription's deliveries, as recorded by a part. */
export interface DeliveryNews {
  readonly before: DeliveryNote;
  readonly now: DeliveryNote;
}

/**
 * Returns true if two states look the same in a status. The time of the first attempt with this result is not compared.
 */
export interface DeliveryNote {
  /** The result of the last attempt, and whether there are any dead letters. */
  readonly trouble: string;
  /** The number of digits in the number of waiting events. */
  readonly backlog: string;
}
