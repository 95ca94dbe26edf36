/** Describes a problem code, including its HTTP status, title, and what needs to change. */
export interface ProblemKind {
  readonly status: number;
  readonly title: string;
  readonly remedy: string;
}
