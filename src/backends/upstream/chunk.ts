/** Splits a list into lists of a size. */
export function chunk<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, at) =>
    items.slice(at * size, (at + 1) * size),
  )
}

/** The ids that fit into the URL of one search. */
export const IDS_AT_ONCE = 50
