/** Stands in for `node:test` where many mutants are tried in one process: it keeps the tests, and runs them when told. */
type Body = (context: { readonly mock: undefined }) => unknown

interface Kept {
  readonly tests: Body[]
  readonly before: Body[]
  readonly after: Body[]
}

let kept: Kept = { tests: [], before: [], after: [] }

export function describe(_name: string, body: () => void): void {
  body()
}

export function it(_name: string, body: Body): void {
  kept.tests.push(body)
}

export function before(body: Body): void {
  kept.before.push(body)
}

export function after(body: Body): void {
  kept.after.push(body)
}

/** Runs what was kept since the last time; throws with the first test that fails. */
export async function runKept(): Promise<void> {
  const { tests, before, after } = kept
  kept = { tests: [], before: [], after: [] }
  const context = { mock: undefined }
  for (const body of before) await body(context)
  try {
    for (const body of tests) await body(context)
  } finally {
    for (const body of after) await body(context)
  }
}
