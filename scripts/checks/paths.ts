import type { Sources } from './modules.ts'

const CODE_SPAN = /`([\w.-]+(?:\/[\w.-]+)*\/?)`/g

/** Source files and folders that Markdown pages name in backticks and that do not exist. A path may leave out its beginning. */
export function findPathFaults(pages: Sources, files: readonly string[]): readonly string[] {
  return [...pages].flatMap(([page, text]) =>
    [...text.replace(/^```[\s\S]*?^```/gm, '').matchAll(CODE_SPAN)]
      .map(([, path = '']) => path)
      .filter(path => isSourcePath(path) && !exists(path, files))
      .map(path => `${page}: names ${path}, which does not exist`),
  )
}

function isSourcePath(path: string): boolean {
  return path.endsWith('.ts') || /^(src|test|scripts|examples|bench|vectors)\//.test(path)
}

function exists(path: string, files: readonly string[]): boolean {
  const folder = `${path.replace(/\/$/, '')}/`
  return files.some(file => file === path || file.endsWith(`/${path}`) || file.startsWith(folder))
}
