/** The number of claims and bytes of a part that were pushed to this process and have been read. */
export interface PushCount {
  /** Records a message that contains `claims` claims. Returns whether a message before it was lost. */
  readonly read: (pushed: number, bytes: number, claims: number) => boolean;
  readonly pushed: () => number;
  readonly bytes: () => number;
  /** If something was pushed before this and has not been read, it is lost. */
  readonly skipTo: (pushed: number, bytes: number) => void;
}

export function createPushCount(): PushCount {
  let claimsRead = 0;
  let bytesRead = 0;
  return {
    read(pushed, bytes, claims) {
      const isLost = claimsRead + claims !== pushed;
      claimsRead = pushed;
      bytesRead = bytes;
      return isLost;
    },
    pushed: () => claimsRead,
    bytes: () => bytesRead,
    skipTo(pushed, bytes) {
      claimsRead = Math.max(claimsRead, pushed);
      bytesRead = Math.max(bytesRead, bytes);
    },
  };
}
