/**
 * Where a thread's file is, given from `src/` on. The built program says of every module that it stands at the root of
 * the program's own file system, where `src` begins.
 */
export function threadUrl(path: string): string {
  return new URL(path, import.meta.url).href;
}
