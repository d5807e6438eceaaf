/** What callers share until it is committed: the rows to write, or an open transaction. */
export interface CommitGroup<Content> {
  readonly content: Content
  /** Resolves when the group is on disk; rejects if it is lost. */
  readonly durable: Promise<void>
}

interface OpenGroup<Content> extends CommitGroup<Content> {
  resolve(): void
  reject(error: unknown): void
}

/**
 * Lets many callers wait for the disk once: those of one turn of the event loop share a group, as do those that arrive while
 * the group before is committed.
 */
export class GroupCommit<Content = void> {
  readonly #begin: () => Content
  readonly #commit: (content: Content) => void | Promise<void>
  readonly #schedule: (callback: () => void) => unknown
  #open: OpenGroup<Content> | undefined
  #running: Promise<void> | undefined

  /** `schedule` says when a group ends that has no other before it: by default at the end of the turn. */
  constructor(
    begin: () => Content,
    commit: (content: Content) => void | Promise<void>,
    schedule: (callback: () => void) => unknown = setImmediate,
  ) {
    this.#begin = begin
    this.#commit = commit
    this.#schedule = schedule
  }

  /** The group that is open now. */
  get open(): CommitGroup<Content> | undefined {
    return this.#open
  }

  /** Joins the open group, or begins one. Throws if `begin` does. */
  join(): CommitGroup<Content> {
    this.#open ??= this.#beginGroup()
    return this.#open
  }

  /** Ends the open group now. */
  settle(): void {
    const group = this.#open
    if (!group) return
    this.#open = undefined
    try {
      const running = this.#commit(group.content)
      if (running) this.#running = running.then(group.resolve, group.reject).then(() => this.#continue())
      else group.resolve()
    } catch (error) {
      group.reject(error)
    }
  }

  /** Gives up the open group. */
  lose(error: unknown): void {
    this.#open?.reject(error)
    this.#open = undefined
  }

  /** Resolves when every group is committed or lost. */
  async finish(): Promise<void> {
    while (this.#open || this.#running) await (this.#running ?? this.#open?.durable.catch(() => {}))
  }

  #beginGroup(): OpenGroup<Content> {
    const content = this.#begin()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    // Every caller that awaits it handles the rejection; without one it is not an error.
    promise.catch(() => {})
    if (!this.#running) this.#scheduleEnd()
    return { content, durable: promise, resolve, reject }
  }

  #scheduleEnd(): void {
    this.#schedule(() => {
      if (!this.#running) this.settle()
    })
  }

  #continue(): void {
    this.#running = undefined
    if (this.#open) this.#scheduleEnd()
  }
}
