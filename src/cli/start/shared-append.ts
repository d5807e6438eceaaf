import { groupCommit } from '../../audit/index.ts'
import { DatabaseUnavailable, isDatabaseUnavailable, type Store } from '../../store/index.ts'
import type { Channel, SupervisorMethods } from './channel.ts'

/** Writes rows for all workers, in common commits: fewer, larger commits take less time (decision 0219). */
export function createSharedAppend(store: Store): SupervisorMethods['append'] {
  const groups = new Map<string, ReturnType<typeof groupCommit<object>>>()
  return async ({ table, rows }) => {
    const group =
      groups.get(table) ??
      groupCommit<object>({
        write: list => store.append(table, list as never),
        isOutage: isDatabaseUnavailable,
      })
    groups.set(table, group)
    try {
      await group.add(rows)
      return {}
    } catch (error) {
      if (error instanceof Error && isDatabaseUnavailable(error)) return { outage: error.message }
      throw error
    }
  }
}

/** On PostgreSQL each worker writes for itself. */
export function shareAppend(store: Store, { call }: Channel<SupervisorMethods>): Store {
  if (store.dialect === 'postgres') return store
  return {
    ...store,
    async append(table, rows) {
      const { outage } = await call('append', { table, rows })
      if (outage !== undefined) throw new DatabaseUnavailable(outage)
    },
  }
}
