/** Replaces `node:test` when one process tries many mutants: collects the tests, and runs them on request. */
export { mock } from 'node:test'

type Body = () => unknown

interface TestOptions {
  readonly skip?: string
  readonly todo?: string
}

class Suite {
  readonly parts: (Suite | Body)[] = []
  readonly before: Body[] = []
  readonly after: Body[] = []
  readonly beforeEach: Body[] = []
}

let open = new Suite()

export function describe(_name: string, body: () => void): void {
  const outer = open
  open = new Suite()
  outer.parts.push(open)
  body()
  open = outer
}

/** A test that is skipped, or that may fail, detects nothing. */
export function it(_name: string, ...[options, body]: readonly [Body] | readonly [TestOptions, Body?]): void {
  if (typeof options === 'function') open.parts.push(options)
  else if (body && !options.skip && !options.todo) open.parts.push(body)
}

export function before(body: Body): void {
  open.before.push(body)
}

export function after(body: Body): void {
  open.after.push(body)
}

export function beforeEach(body: Body): void {
  open.beforeEach.push(body)
}

/** Runs the tests registered since the last call; throws the error of the first test that fails. */
export async function runRegistered(): Promise<void> {
  const registered = open
  open = new Suite()
  await run(registered, [])
}

/** Drops the tests of a file that failed to load. */
export function forgetRegistered(): void {
  open = new Suite()
}

async function run({ parts, before, after, beforeEach }: Suite, outer: readonly Body[]): Promise<void> {
  const each = [...outer, ...beforeEach]
  try {
    for (const body of before) await body()
    for (const part of parts) {
      if (part instanceof Suite) await run(part, each)
      else for (const body of [...each, part]) await body()
    }
  } finally {
    for (const body of after) await body()
  }
}
