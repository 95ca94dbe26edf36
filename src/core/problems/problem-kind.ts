/** The meaning of a code: its HTTP status, a fixed title, and what the caller should change. */
export interface ProblemKind {
  readonly status: number;
  readonly title: string;
  readonly remedy: string;
}
