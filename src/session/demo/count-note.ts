/** `4`, or `50 of 120` where not all are shown. */
export function countNote(shown: number, total: number): string {
  return total > shown ? `${shown} of ${total}` : String(shown)
}
