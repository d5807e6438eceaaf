import type { Sources } from './modules.ts'

const CODE_SPAN = /`([A-Z][a-z]+(?: [a-z]+(?!\w|\.\w)){1,2})[^`\n]*`/g
/** Pages that describe earlier states. */
const HISTORY = /^(CHANGELOG\.md|docs\/decisions\/)/

/** Messages that pages quote and whose first words no source file has. */
export function findMessageFaults(pages: Sources, sources: Sources): readonly string[] {
  const code = [...sources].filter(([path]) => isProduct(path)).map(([, text]) => text)
  const isKnown = (words: string) => code.some(text => text.includes(words))
  return [...pages]
    .filter(([page]) => !HISTORY.test(page))
    .flatMap(([page, text]) =>
      [...text.replace(/^ *```[\s\S]*?^ *```/gm, '').matchAll(CODE_SPAN)]
        .filter(([, words = '']) => !isKnown(words))
        .map(([span]) => `${page}: quotes ${span}, which no source file has`),
    )
}

function isProduct(path: string): boolean {
  return path.startsWith('src/') && !path.endsWith('.test.ts')
}
