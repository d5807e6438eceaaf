type Options = Readonly<Record<string, { type: 'boolean' } | { type: 'string'; multiple: true }>>

/** The options that a usage lists, or names in its first lines. `--name <text>` has a value. */
export function readOptions(usage: string): Options {
  const [first = ''] = usage.trim().split('\n\n')
  const named = first.matchAll(/--(\w[\w-]*)( "?<\w)?/g)
  const listed = usage.matchAll(/^ {2}--(\w[\w-]*)( "?<\w)?/gm)
  return Object.fromEntries(
    [...named, ...listed].map(([, name = '', value]) => [
      name,
      value === undefined ? { type: 'boolean' } : { type: 'string', multiple: true },
    ]),
  )
}
