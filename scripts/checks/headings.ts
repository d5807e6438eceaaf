/** Headings and entries of a changelog that occur twice in the same version: merges leave them. */
export function findHeadingFaults(page: string, text: string): readonly string[] {
  const known = new Set<string>()
  let version = ''
  return [...text.matchAll(/^(##+|-) (.+)$/gm)].flatMap(([line, mark, title = '']) => {
    if (mark === '##') version = title
    const place = `${mark === '##' ? '' : version} ${line}`
    if (known.has(place))
      return [`${page}: has ${mark === '-' ? 'the entry' : 'the heading'} "${title}" twice`]
    known.add(place)
    return []
  })
}
