import { LOG_LEVELS } from '../../config/index.ts'
import type { Store } from '../../store/index.ts'
import type { Controls } from './context.ts'
import { setRuntimeValue } from './runtime-value.ts'

/** The actions that all instances of a deployment repeat. */
type RuntimeName = 'reload' | 'log-level'

/** How soon another instance repeats an action. */
const EVERY_MS = 2_000

/** Announces an action to the other instances, which share the database. */
export function announce({ db }: Store, name: RuntimeName, value: string, now: number): Promise<void> {
  return setRuntimeValue(db, name, value, now)
}

interface FollowOptions {
  readonly everyMs?: number
  readonly onError: (error: unknown) => void
}

/** Repeats the actions that another instance announces from now on (ADMIN-9). Call it in one process of an instance. */
export async function followAnnouncements(
  { db }: Store,
  controls: Controls,
  { everyMs = EVERY_MS, onError }: FollowOptions,
): Promise<{ stop(): Promise<void> }> {
  let seen: ReadonlyMap<string, string> | undefined
  let running: Promise<void> | undefined

  async function look(): Promise<void> {
    const rows = await db.selectFrom('runtime_value').select(['name', 'value']).execute()
    const found = new Map(rows.map(({ name, value }) => [name, value]))
    const news = rows.filter(({ name, value }) => seen !== undefined && seen.get(name) !== value)
    seen = found
    for (const { name, value } of news) await repeat(controls, name, value)
  }

  const schedule = () => {
    running ??= look()
      .catch(onError)
      .finally(() => {
        running = undefined
      })
    return running
  }
  await schedule()
  const timer = setInterval(schedule, everyMs).unref()
  return {
    stop: async () => {
      clearInterval(timer)
      await running
    },
  }
}

async function repeat(controls: Controls, name: string, value: string): Promise<void> {
  if (name === 'reload') await controls.reload()
  const level = LOG_LEVELS.find(known => name === 'log-level' && known === value)
  if (level !== undefined && level !== controls.getLogLevel()) await controls.setLogLevel(level)
}
