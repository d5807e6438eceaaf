/** The first names of a list, and how many others there are: "a, b, c and 2 more". */
export function shortenList(names: readonly string[], shown = 3): string {
  const more = names.length - shown
  return more > 0 ? `${names.slice(0, shown).join(', ')} and ${more} more` : names.join(', ')
}
