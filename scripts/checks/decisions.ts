import type { Sources } from './modules.ts'

const RECORD = /^docs\/decisions\/(\d{4})-[^/]+\.md$/
const SECTIONS = ['Context', 'Decision', 'When to revisit']
const CITATION = /\[(\d{4})[^\]]*\]\((?:[^)]*\/)?(\d{4})-[^)]*\)/g

/** Decision records without a required section or with another number than their file, and links that name a record by another number. */
export function findDecisionFaults(pages: Sources): readonly string[] {
  return [...pages].flatMap(([page, text]) => {
    const number = RECORD.exec(page)?.[1]
    return [
      ...(number === undefined ? [] : findRecordFaults(page, number, text)),
      ...[...text.matchAll(CITATION)]
        .filter(([, named, target]) => named !== target)
        .map(([, named, target]) => `${page}: names ${named} in a link to ${target}`),
    ]
  })
}

function findRecordFaults(page: string, number: string, text: string): readonly string[] {
  return [
    ...(text.startsWith(`# ${number} `) ? [] : [`${page}: its title does not begin with ${number}`]),
    ...SECTIONS.filter(name => !new RegExp(`^## ${name}\n+[^#\\s]`, 'm').test(text)).map(
      name => `${page}: has no section "${name}", or an empty one`,
    ),
  ]
}
