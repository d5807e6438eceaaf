/** Headings of a changelog that occur twice in the same place: merges leave two lists of one kind. */
export function findHeadingFaults(page: string, text: string): readonly string[] {
  const known = new Set<string>()
  let version = ''
  return [...text.matchAll(/^(##+) (.+)$/gm)].flatMap(([, level, title = '']) => {
    if (level === '##') version = title
    const heading = `${version} ${level} ${title}`
    if (known.has(heading)) return [`${page}: has the heading "${title}" twice`]
    known.add(heading)
    return []
  })
}
