/** What must be closed again, in the reverse of the order in which it was opened. */
export class Closing {
  readonly #steps: (() => unknown)[] = []

  add(step: () => unknown): void {
    this.#steps.unshift(step)
  }

  /** Closes everything, even when a step fails; the first failure is thrown at the end. */
  async close(): Promise<void> {
    const failures: unknown[] = []
    for (const step of this.#steps.splice(0)) {
      try {
        await step()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
}
