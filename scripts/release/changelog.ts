/** The heading of changes that no release has yet. */
const UNRELEASED = '## Unreleased\n'

/** Gives the unreleased changes a version and a date (`2026-11-17`). A text says why it cannot. */
export function releaseChanges(
  changelog: string,
  version: string,
  date: string,
): { readonly changelog: string; readonly notes: string } | string {
  const start = changelog.indexOf(UNRELEASED)
  if (start < 0) return 'CHANGELOG.md has no heading "## Unreleased"'
  const rest = changelog.slice(start + UNRELEASED.length)
  const end = rest.search(/^## /m)
  const notes = (end < 0 ? rest : rest.slice(0, end)).trim()
  if (notes === '') return 'CHANGELOG.md has no unreleased changes'
  const heading = `${UNRELEASED}\n## ${version} (${date})\n`
  return { changelog: changelog.slice(0, start) + heading + rest, notes }
}

/** Whether a version follows another one: 0.2.0 follows 0.1.9. */
export function follows(version: string, before: string): boolean {
  const a = parse(version)
  const b = parse(before)
  if (!a || !b) return false
  const index = a.findIndex((part, position) => part !== b[position])
  return index >= 0 && (a[index] ?? 0) > (b[index] ?? 0)
}

function parse(version: string): readonly number[] | undefined {
  return /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$/.test(version)
    ? version.split('.').map(Number)
    : undefined
}
