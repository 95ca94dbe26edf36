/** Describes a problem code. Includes the HTTP status, the title, and the required change. */
export interface ProblemKind {
  readonly status: number;
  readonly title: string;
  readonly remedy: string;
}
