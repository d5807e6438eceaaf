/** Missing, unknown or invalid settings: one line for each, with its name (START-7). */
export class SettingsError extends Error {
  override readonly name = 'SettingsError'
  readonly problems: readonly string[]
  constructor(problems: string | readonly string[], options?: ErrorOptions) {
    const lines = typeof problems === 'string' ? [problems] : problems
    super(lines.join('\n'), options)
    this.problems = lines
  }
}

/** Collects all errors, so that the administrator sees them at once. */
export function readEach<Given, Read>(
  given: readonly Given[],
  read: (value: Given) => Read,
): readonly Read[] {
  const problems: string[] = []
  const values: Read[] = []
  for (const value of given) {
    try {
      values.push(read(value))
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error
      problems.push(...error.problems)
    }
  }
  if (problems.length > 0) throw new SettingsError(problems)
  return values
}
