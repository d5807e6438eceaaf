/** Collects work and does it a little later in one step; failed work is retried. */
export interface Later<Item> {
  add(...items: readonly Item[]): void
  flush(): Promise<void>
}

/** `work` rejects if no item is done. A process that ends does not wait for it: call `flush` first. */
export function doLater<Item>(
  work: (items: readonly Item[]) => Promise<void>,
  { everyMs, atOnce = 500 }: { readonly everyMs: number; readonly atOnce?: number },
): Later<Item> {
  let waiting: Item[] = []
  let running: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined

  function schedule(): void {
    if (timer || waiting.length === 0) return
    timer = setTimeout(() => {
      timer = undefined
      void flush()
    }, everyMs)
    timer.unref()
  }

  async function run(): Promise<void> {
    while (waiting.length > 0) {
      const items = waiting.slice(0, atOnce)
      try {
        await work(items)
      } catch {
        return
      }
      waiting = waiting.slice(items.length)
    }
  }

  async function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    running ??= run().finally(() => {
      running = undefined
      schedule()
    })
    await running
  }

  return {
    add(...items) {
      waiting.push(...items)
      schedule()
    },
    flush,
  }
}
