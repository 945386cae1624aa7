//! Contract of chapter 3, which every variant must keep, whatever it allocates.
//!
//!     VARIANT=exercise cargo test -p chapter3 --test contract

use course::bench::contract::{Chapter, get};

const CHAPTER: Chapter = Chapter {
    program: env!("CARGO_BIN_EXE_chapter3"),
    variants: &["problem", "solution", "fewer-clones", "sort-once"],
    fixes: &["solution", "sort-once"],
};

#[tokio::test]
async fn every_page_has_the_names_that_are_its() {
    const FIRST: &str = "bide bababa, dami bababa, dodo bababa, made bababa, mimi bababa, \
                         boma bababe, dide bababe, kami bababe, kobo bababe, mema bababe";
    const LAST: &str = "mebi momome, biba momomi, dake momomi, kedo momomi, maba momomi, \
                        mike momomi, bodo momomo, diba momomo, kimi momomo, medo momomo";
    const FIRST_OF_OTHERS: &str = "bebo bababa, boma bababa, kaki bababa, kobo bababa, babe bababe, \
                                   biki bababe, debo bababe, doka bababe, kibe bababe, maki bababe";
    const NONE: &str = "";
    for (data_seed, pages) in [
        (
            0,
            [(0, FIRST), (1_999, LAST), (2_000, NONE), (0, FIRST)].as_slice(),
        ),
        (5, &[(0, FIRST_OF_OTHERS)]),
    ] {
        CHAPTER
            .with(&[])
            .data_seed(data_seed)
            .every_variant(async |service| {
                for (number, names) in pages {
                    let answer = service.get(&format!("/clients/{number}")).await;
                    assert_eq!(
                        answer,
                        format!("200 {names}"),
                        "page {number} must stay as it was: ten of all clients, in the order of their names"
                    );
                }
                assert_eq!(service.get("/elsewhere").await, "404", "no such path");
            })
            .await;
    }
}

#[tokio::test]
async fn users_who_hang_up_hold_up_nobody() {
    CHAPTER
        .every_variant(async |service| {
            service.hang_up(4, get("/clients/0"), 20).await;
            let answer = service.get("/clients/0").await;
            assert!(
                answer.body().is_some(),
                "4 users hung up, and the next one was told {answer}"
            );
        })
        .await;
}
