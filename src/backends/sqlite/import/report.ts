import type { Fault } from '../../../fhir/index.ts'

/** Where a resource was: the line on which it begins, from 1. */
export interface Place {
  readonly file: string
  readonly line: number
}

/** Why resources were refused. It names types, elements and rules, never values. */
export interface Reason {
  readonly text: string
  readonly count: number
  /** The first places. */
  readonly places: readonly Place[]
}

/** A file that could not be read, or not to its end. */
export interface Unreadable {
  readonly file: string
  /** The last line that was read. */
  readonly line?: number
  readonly reason: string
}

export interface ImportReport {
  readonly files: number
  readonly created: number
  readonly updated: number
  readonly unchanged: number
  readonly refused: number
  /** How many of those that were refused are no resource at all: a line that is no JSON, an entry without one. */
  readonly none: number
  readonly reasons: readonly Reason[]
  readonly unreadable: readonly Unreadable[]
  /** Conditional references (`Practitioner?identifier=…`) that nothing or several things match; they stay as they are. */
  readonly unresolved: number
}

const placesKept = 3

/** Keeps count of what became of everything that was read. */
export class Tally {
  created = 0
  updated = 0
  unchanged = 0
  refused = 0
  none = 0
  unresolved = 0
  readonly unreadable: Unreadable[] = []
  readonly #reasons = new Map<string, { count: number; places: Place[] }>()

  /** A resource or line that is not imported, for one or several reasons. */
  refuse(place: Place, reasons: readonly string[]): void {
    this.refused++
    for (const text of new Set(reasons)) {
      const known = this.#reasons.get(text) ?? { count: 0, places: [] }
      known.count++
      if (known.places.length < placesKept) known.places.push(place)
      this.#reasons.set(text, known)
    }
  }

  get seen(): number {
    return this.created + this.updated + this.unchanged + this.refused
  }

  report(files: number): ImportReport {
    const { created, updated, unchanged, refused, none, unresolved, unreadable } = this
    const reasons = [...this.#reasons].map(([text, known]) => ({ text, ...known }))
    reasons.sort((a, b) => b.count - a.count)
    return { files, created, updated, unchanged, refused, none, reasons, unreadable, unresolved }
  }
}

/** A fault without the numbers of its path, so that the same fault at another place is the same reason. */
export function reasonOf({ path, text }: Fault): string {
  return `${path.replaceAll(/\[\d+\]/g, '')}: ${text}`
}
