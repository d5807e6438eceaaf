import { PATCH_DEPTH } from '../limits.ts'

/** The result of a patch, or why it cannot be applied; `malformed` if it cannot be applied to any resource. */
export type Attempted<T> = { readonly value: T } | { readonly failure: string; readonly malformed: boolean }

export type Patched = Attempted<unknown>

/** A patch is applied as a whole: it fails with the first operation that fails. */
export class PatchFailure extends Error {
  readonly malformed: boolean
  constructor(text: string, malformed = false) {
    super(text)
    this.malformed = malformed
  }
}

/** Turns a thrown `PatchFailure` into a value. */
export function attempt<T>(patch: () => T): Attempted<T> {
  try {
    return { value: patch() }
  } catch (error) {
    if (error instanceof PatchFailure) return { failure: error.message, malformed: error.malformed }
    throw error
  }
}

/** Refuses a value that is nested too deeply for recursive code. */
export function checkDepth(value: unknown, index: number): void {
  if (!isShallow(value, PATCH_DEPTH))
    throw new PatchFailure(`the value of operation ${index} is nested over ${PATCH_DEPTH} levels deep`)
}

function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every(item => isShallow(item, levels - 1))
}
