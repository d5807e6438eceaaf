import type { Sources } from './modules.ts'

const BLOCK = /^ *```sh\n([\s\S]*?)^ *```/gm
const CODE_SPAN = /`([^`\n]+)`/g
const ASSIGNMENT = /^\s*([A-Z][A-Z0-9_]*=)((?:'[^']*'|"[^"]*"|[^\s'"])*)\s*(.*)$/

/**
 * Settings that a shell and systemd (`EnvironmentFile=`) read differently: a shell interprets characters that are not quoted, and
 * systemd adds a comment after a value to the value.
 */
export function findAssignmentFaults(pages: Sources): readonly string[] {
  return [...pages].flatMap(([page, text]) =>
    listCode(text).flatMap(code => {
      const [, name, value = '', rest = ''] = ASSIGNMENT.exec(code) ?? []
      const isCommand = rest !== '' && !rest.startsWith('#')
      if (name === undefined || isCommand || (rest === '' && !needsQuotes(value))) return []
      return [`${page}: ${name}… needs quotes, or has a comment after its value`]
    }),
  )
}

function listCode(text: string): readonly string[] {
  const lines = [...text.matchAll(BLOCK)].flatMap(([, block = '']) => block.split('\n'))
  const spans = [...text.replace(BLOCK, '').matchAll(CODE_SPAN)].map(([, span = '']) => span)
  return [...lines, ...spans]
}

function needsQuotes(value: string): boolean {
  return /[\s&;|<>()$`*?\\#]/.test(value.replace(/'[^']*'|"[^"$`\\]*"/g, ''))
}
