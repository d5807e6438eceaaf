/** The heading of changes that no release has yet. */
const UNRELEASED = '## Unreleased\n'

/** Gives the unreleased changes a version and a date (`2026-11-17`). A text says why it cannot. */
export function releaseChanges(
  changelog: string,
  version: string,
  date: string,
): { readonly changelog: string } | string {
  const start = changelog.indexOf(UNRELEASED)
  if (start < 0) return 'CHANGELOG.md has no heading "## Unreleased"'
  if (findUnreleased(changelog) === '') return 'CHANGELOG.md has no unreleased changes'
  const heading = `${UNRELEASED}\n## ${version} (${date})\n`
  return { changelog: changelog.slice(0, start) + heading + changelog.slice(start + UNRELEASED.length) }
}

/** The changes that no release has yet. */
export function findUnreleased(changelog: string): string {
  const start = changelog.indexOf(UNRELEASED)
  return start < 0 ? '' : readSection(changelog.slice(start + UNRELEASED.length))
}

/** The changes of a released version. */
export function findNotes(changelog: string, version: string): string | undefined {
  const heading = `## ${version} (`
  const start = changelog.startsWith(heading) ? 0 : changelog.indexOf(`\n${heading}`) + 1
  if (!changelog.startsWith(heading, start)) return undefined
  return readSection(changelog.slice(changelog.indexOf('\n', start)))
}

/** The text up to the heading of the next version. */
function readSection(text: string): string {
  const end = text.search(/^## /m)
  return (end < 0 ? text : text.slice(0, end)).trim()
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
