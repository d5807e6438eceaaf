/** Statements that pass on the launch, and request the scope for it. */
export function requestLaunch(isLaunched: boolean, indent: number): string {
  const lines = isLaunched
    ? [
        "if (query.has('launch')) {",
        "  parameters.set('launch', query.get('launch'))",
        "  parameters.set('scope', 'launch ' + SCOPE)",
        '}',
      ]
    : ["if (query.has('launch')) parameters.set('launch', query.get('launch'))"]
  return lines.map(line => `${' '.repeat(indent)}${line}`).join('\n')
}
