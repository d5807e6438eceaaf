/** The width of a terminal that nobody made wider. */
const COLUMNS = 80
/** The narrowest description beside an option. */
const NARROWEST = 30

/** Wraps a help text. Paragraphs flow, the descriptions of options keep their column, and commands can still be copied. */
export function wrapHelp(text: string): string {
  return text
    .split('\n\n')
    .map(block =>
      /^(?!Usage:)\S/.test(block) && !/\n {2}/.test(block) ? wrapParagraph(block) : wrapLines(block),
    )
    .join('\n\n')
}

function wrapParagraph(block: string): string {
  const end = block.endsWith('\n') ? '\n' : ''
  return wrap(block.split(/\s+/).filter(Boolean), { first: '', rest: '' }) + end
}

function wrapLines(block: string): string {
  return joinContinued(block.split('\n')).map(wrapLine).join('\n')
}

/** A line that continues the description of an option, or a description below a long option. */
function joinContinued(lines: readonly string[]): readonly string[] {
  const joined: string[] = []
  for (const line of lines) {
    const before = joined.at(-1) ?? ''
    const isContinued = /^ {8,}\S/.test(line) && /^ {2}\S.* {2,}\S|^ {8,}\S/.test(before)
    if (isContinued && !/npm |sallyport /.test(line)) joined.splice(-1, 1, `${before} ${line.trim()}`)
    else joined.push(line)
  }
  return joined
}

function wrapLine(line: string): string {
  if (line.length <= COLUMNS) return line
  const usage = /^(?:Usage: | {7})(?=npm |sallyport |curl )/.exec(line)?.[0]
  if (usage !== undefined)
    return wrap(splitUsage(line.slice(usage.length)), { first: usage, rest: ' '.repeat(usage.length + 2) })
  const command = /^ {2}(?=[^-].*(?:npm run|sallyport|curl) )/.exec(line)?.[0]
  if (command !== undefined)
    return wrap(splitUsage(line.trim()), { first: command, rest: '    ', last: ' \\' })
  const option = /^ {2}\S.*? {2,}(?=\S)/.exec(line)?.[0]
  const column =
    option !== undefined && COLUMNS - option.length >= NARROWEST ? option : (/^ */.exec(line)?.[0] ?? '')
  return wrap(line.slice(column.length).trim().split(/\s+/), {
    first: column,
    rest: ' '.repeat(column.length),
  })
}

/** Parts of a command that belong together: an option with its value, a text in quotes, a group in brackets. */
function splitUsage(text: string): readonly string[] {
  return (
    text.match(
      /\[(?:\[[^\]]*\]|[^[\]])*\]\S*|\([^)]*\)|--[\w-]+ (?:"[^"]*"\S*|'[^']*'|<[^>]*>|[^-\s]\S*)|"[^"]*"|'[^']*'|\S+/g,
    ) ?? []
  )
}

interface Edges {
  readonly first: string
  readonly rest: string
  /** At the end of each line but the last. */
  readonly last?: string
}

function wrap(words: readonly string[], { first, rest, last = '' }: Edges): string {
  const lines: string[] = []
  let line = first
  for (const [at, word] of words.entries()) {
    const isStart = line === first && at === 0
    const next = isStart || line === rest ? `${line}${word}` : `${line} ${word}`
    if (next.length + last.length <= COLUMNS || isStart || line === rest) line = next
    else {
      lines.push(line + last)
      line = `${rest}${word}`
    }
  }
  return [...lines, line].join('\n')
}
